"""Does a log of shaped rewards keep the law, and if not, where and why?"""
