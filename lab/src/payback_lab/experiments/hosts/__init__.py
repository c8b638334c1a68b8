"""GRM and the advantage side in Stable-Baselines3, beside a raw bonus that is tuned."""
