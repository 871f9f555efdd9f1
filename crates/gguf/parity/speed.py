"""How fast the engine and llama.cpp read prompts and write tokens, by length of prompt, one thread each.

    python speed.py MODEL.gguf CONTINUE [RUNS]

needs the package `xllamacpp`. CONTINUE is the engine's example program, built with `cargo build --release -p
drawloom-gguf --example continue`. Both sides are asked in one way: the time from the request to the first text is the
prompt's, that from there to the end the tokens'. Prints the best of RUNS (3) and their ratio to llama.cpp's.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request

import xllamacpp

LENGTHS = [100, 500, 1_500, 3_000]
WRITTEN = 64
SENTENCES = [f"In the year {year} the weaver made {year % 7} cloths and sold them. " for year in range(1, 2_000)]


class Peer:
    def __init__(self, path):
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx = 4096
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.hostnames, params.port = ["127.0.0.1"], 20_000 + os.getpid() % 20_000
        self.url = f"http://127.0.0.1:{params.port}/"
        self.server = xllamacpp.Server(params)

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
        return urllib.request.urlopen(request)

    def count(self, text):
        with self.post("tokenize", {"content": text, "add_special": True}) as answer:
            return len(json.load(answer)["tokens"])

    def run(self, text):
        body = {"prompt": text, "n_predict": WRITTEN, "stream": True, "temperature": 0, "cache_prompt": False,
                "ignore_eos": True}
        began, first = time.perf_counter(), None
        with self.post("completion", body) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    if first is None and event["content"]:
                        first = time.perf_counter()
        return first - began, (event["tokens_predicted"] - 1) / (time.perf_counter() - first)


def engine(program, path, text):
    out = subprocess.run([program, path, text, str(WRITTEN)], env={**os.environ, "RAYON_NUM_THREADS": "1"},
                         capture_output=True, text=True, check=True).stdout
    # The second run of the program finds the prompt in its cache.
    prompt, unit, speed = re.search(r"prompt Some\(([\d.]+)(ms|s|µs)\), ([\d.]+) tokens/s", out).groups()
    return float(prompt) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit], float(speed)


def prompt_of(peer, length):
    text = ""
    for sentence in SENTENCES:
        if peer.count(text + sentence) > length:
            return text.rstrip()
        text += sentence


def main():
    path, program, *rest = sys.argv[1:]
    runs = int(rest[0]) if rest else 3
    peer = Peer(path)
    print("| prompt, tokens | read, tokens/s | llama.cpp | ratio | written, tokens/s | llama.cpp | ratio |")
    print("|---|---|---|---|---|---|---|")
    for length in LENGTHS:
        text = prompt_of(peer, length)
        tokens = peer.count(text)
        ours, theirs = [], []
        # In turns, so that both meet the same load.
        for _ in range(runs):
            ours.append(engine(program, path, text))
            theirs.append(peer.run(text))
        cells = []
        for pick in (lambda run: tokens / run[0], lambda run: run[1]):
            own, other = max(map(pick, ours)), max(map(pick, theirs))
            cells += [f"{own:.0f}", f"{other:.0f}", f"{own / other:.2f}"]
        print(f"| {tokens} | {' | '.join(cells)} |", flush=True)


main()
