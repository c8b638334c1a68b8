"""The rival ways to tame a bonus, in one PPO with an LSTM: the paper's learner with as many heads as a method asks."""
