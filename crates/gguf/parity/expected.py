"""What llama.cpp makes of a model: the other side of tests/parity.rs.

    python expected.py MODEL.gguf EXPECTED.json [CHAT]

needs the packages `xllamacpp` and `numpy`, and runs on one thread with a cache of 32-bit floats and without flash
attention, as the engine does. CHAT is llama.cpp's name of a chat template to compare, such as `llama3`.

A model of 8-bit blocks is asked twice: as it is, where llama.cpp rounds activations to 8 bits (`rounded`), and with
the same weights written out as 32-bit floats, where it does not (`answers`). The engine never rounds them.
"""

import json
import os
import struct
import sys
import tempfile
import urllib.request
from random import Random

import numpy
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


CHATS = [
    [("user", "What is a loom?")],
    [("system", "Be brief."), ("user", "What is a loom?")],
    [("system", "Be brief.\nBe kind."), ("user", "Why  so?"), ("assistant", "A frame,\n\nof wood."), ("user", "中文?")],
]
BLOCK = numpy.dtype([("scale", "<f2"), ("numbers", "i1", 32)])
Q8_0, F32 = 8, 0


class File:
    """Reads what a GGUF file has before its tensors."""

    WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.at = 8
        count, values = self.take("<QQ")
        for _ in range(values):
            self.text()
            self.value(*self.take("<I"))
        self.head = self.bytes[:self.at]
        self.tensors = [self.tensor() for _ in range(count)]
        self.data = -(-self.at // 32) * 32

    def take(self, form):
        taken = struct.unpack_from(form, self.bytes, self.at)
        self.at += struct.calcsize(form)
        return taken

    def text(self):
        (length,) = self.take("<Q")
        self.at += length
        return self.bytes[self.at - length:self.at]

    def value(self, kind):
        if kind == 8:
            self.text()
        elif kind == 9:
            kind, count = self.take("<IQ")
            for _ in range(count):
                self.value(kind)
        else:
            self.at += self.WIDTHS[kind]

    def tensor(self):
        name, (dimensions,) = self.text(), self.take("<I")
        return name, self.take(f"<{dimensions}Q"), *self.take("<IQ")

    def has_blocks(self):
        return any(kind == Q8_0 for _, _, kind, _ in self.tensors)

    def write_exact(self, path):
        """The same weights as 32-bit floats."""
        heads, offset = [], 0
        for name, shape, _, _ in self.tensors:
            heads.append(struct.pack("<Q", len(name)) + name + struct.pack("<I", len(shape))
                         + struct.pack(f"<{len(shape)}QIQ", *shape, F32, offset))
            offset = -(-(offset + 4 * int(numpy.prod(shape))) // 32) * 32
        with open(path, "wb") as out:
            out.write(self.head + b"".join(heads))
            for name, shape, kind, start in self.tensors:
                count, start = int(numpy.prod(shape)), self.data + start
                if kind == Q8_0:
                    blocks = numpy.frombuffer(self.bytes, BLOCK, count // 32, start)
                    numbers = blocks["numbers"].astype("<f4") * blocks["scale"].astype("<f4")[:, None]
                elif kind == F32:
                    numbers = numpy.frombuffer(self.bytes, "<f4", count, start)
                else:
                    raise SystemExit(f"{name.decode()} is of type {kind}")
                out.write(bytes(-out.tell() % 32) + numbers.tobytes())


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class Model:
    ports = iter(range(8192 + os.getpid() % 1000 * 2, 65536))

    def __init__(self, path, chat=None):
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx = 2048
        params.n_parallel = 1
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = 1
        params.hostnames = ["127.0.0.1"]
        params.port = next(self.ports)
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_F32
        params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        if chat:
            params.use_jinja = False
            params.chat_template = chat
        self.server = xllamacpp.Server(params)
        self.base = f"http://127.0.0.1:{params.port}"

    def ask(self, path, body):
        request = urllib.request.Request(
            self.base + path, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def complete(self, prompt, count):
        return self.ask("/completion", {
            "prompt": prompt, "n_predict": count, "temperature": 0, "n_probs": 5, "return_tokens": True,
            "cache_prompt": False, "repeat_penalty": 1.0, "samplers": ["temperature"],
        })

    def tokens(self, text, special=False):
        body = {"content": text, "add_special": True, "parse_special": special}
        return self.ask("/tokenize", body)["tokens"]

    def answer(self, text):
        answer = self.complete(text, 24)
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
        return {
            "text": text,
            "tokens": answer["tokens"],
            "logprobs": [known and known["logprob"] for known in probabilities],
            "top": [known and [[top["id"], top["logprob"]] for top in known["top_logprobs"]]
                    for known in probabilities],
        }

    def chat(self, messages):
        messages = [{"role": role, "content": text} for role, text in messages]
        prompt = self.ask("/apply-template", {"messages": messages})["prompt"]
        return {"messages": messages, "tokens": self.tokens(prompt, special=True)}


def main():
    path, target, chat = [*sys.argv[1:4], None][:3]
    model = Model(path, chat)
    texts = [{"text": text, "tokens": model.tokens(text)} for text in TEXTS + PIECES + mixed(400)]
    chats = [model.chat(messages) for messages in CHATS] if chat else []
    answers, rounded = [model.answer(text) for text in PROMPTS], []
    timings = model.complete(SPEED, 64)["timings"]
    speed = {"text": SPEED, "prompt_tokens": timings["prompt_n"], "prompt": timings["prompt_per_second"],
             "generation": timings["predicted_per_second"], "resident_kb": resident()}
    file = File(path)
    if file.has_blocks():
        with tempfile.TemporaryDirectory() as folder:
            exact = os.path.join(folder, "exact.gguf")
            file.write_exact(exact)
            exact = Model(exact)
            answers, rounded = [exact.answer(text) for text in PROMPTS], answers
    with open(target, "w") as out:
        json.dump({"texts": texts, "chats": chats, "answers": answers, "rounded": rounded, "speed": speed}, out)
    print(json.dumps({key: value for key, value in speed.items() if key != "text"}))
    sys.stdout.flush()
    os._exit(0)


main()
