"""Many runs, in parallel, resumable: what to run (spec), how (runner, engines), and where it is kept (store)."""
