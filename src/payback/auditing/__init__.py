"""Do the shaped rewards of a log cancel in every episode, and if not, where and why?"""
