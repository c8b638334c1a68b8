"""Where tasks are computed: processes of this machine, or a Ray cluster; the records are the same."""
