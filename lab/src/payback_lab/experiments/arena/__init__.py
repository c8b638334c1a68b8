"""Every way to tame a bonus, side by side on MiniGrid."""
