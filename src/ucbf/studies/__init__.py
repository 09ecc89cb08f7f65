"""Many runs, in parallel, resumable: what (spec, runs), how (runner, worker, engines), and where it is kept (store)."""
