
if __name__ == "__main__":
    import subprocess
    import tempfile

    if len(sys.argv) == 3:
        _, mode, place = sys.argv
        if mode == "compiled":
            with_backend(BACKEND)
        torch.save(observed(os.path.join(os.path.dirname(place), "script.py"), WORDS), place)
        sys.exit(0)

    def run(mode, folder):
        """What a run in a fresh interpreter shows, or how it ends without."""
        place = os.path.join(folder, mode)
        environment = dict(os.environ, TORCHDYNAMO_DISABLE="1" if mode == "eager" else "0")
        try:
            done = subprocess.run([sys.executable, __file__, mode, place], env=environment, stdout=subprocess.DEVNULL, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return "hang"
        if done.returncode:
            return f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        return torch.load(place, weights_only=False)

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "script.py"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        eager, compiled = run("eager", folder), run("compiled", folder)
    if isinstance(eager, str):
        print(f"cannot tell: without torch.compile it ends by {eager}")
        sys.exit(2)
    found = (compiled, f"the compiled run ends by {compiled}") if isinstance(compiled, str) else judged(eager, compiled)
    if found is None:
        print("no bug: the compiled run does what the eager one does")
        sys.exit(0)
    print(f"bug: {found[0]}: {found[1]}")
    sys.exit(1)
