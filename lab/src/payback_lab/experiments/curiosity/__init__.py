"""Ready bonuses on MiniGrid with Stable-Baselines3."""
