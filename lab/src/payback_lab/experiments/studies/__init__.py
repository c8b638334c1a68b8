"""Where a repaid bonus is worth its price: the studies on the agent's own view, deeper tasks and learned bonuses."""
