"""PPO with an LSTM."""
