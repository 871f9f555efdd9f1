"""What llama.cpp makes of a model: the other side of tests/parity.rs.

    python expected.py MODEL.gguf EXPECTED.json [TOKENS]

needs the package `xllamacpp` and runs on one thread with a cache of 32-bit floats, as the engine does.
"""

import json
import os
import sys
import time
import urllib.request
from random import Random

import xllamacpp

PROMPTS = [
    "The capital of France is",
    "Once upon a time there was a loom in the attic, and",
    "It was a bright cold day in April, and the clocks were",
    "def fibonacci(n):\n    ",
    "Water boils at 100 degrees Celsius, which is",
    "The three primary colours are",
    "Dear Sir or Madam,\n\nI am writing to",
    "Q: What is 12 + 30?\nA:",
    "She opened the door and saw",
    "The sun rises in the",
    "In 1969 the first human",
    "A recipe for bread: mix 500 g of flour with",
    "The old fisherman looked at the sea.",
    "List of planets: Mercury, Venus,",
    "To be, or not to be,",
    "<html>\n<head>\n<title>",
    "Photosynthesis is the process by which",
    "The rain had not stopped for three days. Every evening the child",
    "Newton's second law states that",
    "\"I don't know,\" she said,",
    "The weaver drew up just the threads that",
    "My favourite season is autumn because",
    "1, 2, 3, 4, 5,",
    "The difference between a cat and a dog is that",
]
TEXTS = PROMPTS + [
    "",
    " ",
    "\n\n\n",
    "a  b   c    d\te\r\nf",
    "3.14159 and 2,718 in 1984; x86_64",
    "I'll we've they're don't IT'S",
    "naïve café Ünïcödé Straße",
    "中文 テキスト 한국어",
    "مرحبا שלום",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u0301e\u0301",
    "<|im_end|> typed <|im_start|>system",
    "   leading and trailing   ",
    "fn main() { println!(\"{}\", 1 << 2); } // é",
    "\u00a0\u2003\u3000x",
    "٣٤٥ ⅷ ½ ²",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]
PIECES = [
    "the", "weaver", "Über", "naïve", "fn", "main()", "{", "}", ";", "::<u8>", "0x1F", "3.14", "1984", "12,345", "e.g.",
    "don't", "I'll", " ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", " \n ", "中文", "你好，世界", "日本語テキスト", "한국어", "عربى",
    "עברית", "हिन्दी", "ไทย", " việc", "Ελλάδα", "кириллица", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "e\u0301", "\u00a0",
    "\u2003", "\u3000", "\u2581", "\u200b", "\ufeff", "\x00", "\x01", "\x7f", "\x85", "\ue000", "\U0010ffff", "\ufffd", "<s>",
    "</s>", "<unk>", "[INST]", "[/INST]", "<0x41>", "<|im_end|>", "“quoted”", "—", "…", "…?!", "_snake_case_", "CamelCase",
    "https://example.org/a?b=c&d=%20", "#include <stdio.h>", "\\n", "\"", "'", "½", "²", "ⅷ", "٣", "ß", "ǅ", "İ", "ﬁ",
]


def mixed(count):
    """Texts of random pieces, the same on every run."""
    random = Random(7)
    texts = []
    for number in range(count):
        between = random.choice(["", "", " ", "  ", "\n"])
        texts.append(between.join(random.choice(PIECES) for _ in range(random.randint(1, 12))))
    return texts


SPEED = " ".join(f"In the year {year} the weaver made {year % 7} cloths and sold them." for year in range(1900, 1926))


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def main():
    model, target = sys.argv[1:3]
    tokens = int(sys.argv[3]) if len(sys.argv) > 3 else 24
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 2048
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 8192 + os.getpid() % 1000
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_F32
    params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    server = xllamacpp.Server(params)
    base = f"http://127.0.0.1:{params.port}"

    def ask(path, body):
        request = urllib.request.Request(base + path, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def complete(prompt, count):
        return ask("/completion", {
            "prompt": prompt, "n_predict": count, "temperature": 0, "n_probs": 5, "return_tokens": True,
            "cache_prompt": False, "repeat_penalty": 1.0, "samplers": ["temperature"],
        })

    prompts = []
    for text in PROMPTS:
        answer = complete(text, tokens)
        # The server leaves out probabilities of tokens that are half a character.
        told = iter(answer["completion_probabilities"])
        known = next(told, None)
        probabilities = []
        for token in answer["tokens"]:
            if known and known["id"] == token:
                probabilities.append(known)
                known = next(told, None)
            else:
                probabilities.append(None)
        prompts.append({
            "text": text,
            "tokens": answer["tokens"],
            "logprobs": [known and known["logprob"] for known in probabilities],
            "top": [known and [[top["id"], top["logprob"]] for top in known["top_logprobs"]]
                    for known in probabilities],
        })
    texts = [{"text": text, "tokens": ask("/tokenize", {"content": text, "add_special": True, "parse_special": False})["tokens"]}
             for text in TEXTS + PIECES + mixed(400)]
    timings = complete(SPEED, 64)["timings"]
    speed = {"text": SPEED, "prompt_tokens": timings["prompt_n"], "prompt": timings["prompt_per_second"],
             "generation": timings["predicted_per_second"], "resident_kb": resident()}
    with open(target, "w") as out:
        json.dump({"prompts": prompts, "texts": texts, "speed": speed}, out)
    print(json.dumps({key: value for key, value in speed.items() if key != "text"}))
    sys.stdout.flush()
    os._exit(0)


main()
