
if __name__ == "__main__":
    import subprocess
    import tempfile

    if len(sys.argv) == 3:
        _, mode, place = sys.argv
        prepare(BACKEND, mode)
        torch.save(observed(os.path.join(os.path.dirname(place), "script.py"), WORDS), place)
        sys.exit(0)

    def run(mode, folder, seed="0"):
        """What a run in a fresh interpreter shows, or how it ends without."""
        place = os.path.join(folder, mode)
        environment = dict(os.environ, PYTHONHASHSEED=seed)
        # On a machine on which others work too everything takes longer.
        limit = LIMIT * max(1, min(MOST_CROWDED, os.getloadavg()[0] / len(os.sched_getaffinity(0))))
        try:
            done = subprocess.run([sys.executable, __file__, mode, place], env=environment, stdout=subprocess.DEVNULL, timeout=limit)
        except subprocess.TimeoutExpired:
            return "hang"
        if done.returncode:
            return f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        return torch.load(place, weights_only=False)

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "script.py"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        eager, compiled, again = run("eager", folder), run("compiled", folder), run("eager", folder, "1")
    for seen in (eager, again):
        if isinstance(seen, str):
            print(f"cannot tell: without torch.compile it ends by {seen}")
            sys.exit(2)
    if isinstance(compiled, str):
        found = compiled, f"the compiled run ends by {compiled}"
    else:
        found = judged(eager, compiled)
    if found is None:
        print("no bug: the compiled run does what the eager one does")
        sys.exit(0)
    if not isinstance(compiled, str) and (why := doubt(found, compiled, BACKEND)):
        print(f"cannot tell: {why}")
        sys.exit(2)
    if judged(eager, again):
        print("cannot tell: two runs without torch.compile differ from each other")
        sys.exit(2)
    print(f"bug: {found[0]}: {found[1]}")
    sys.exit(1)
