"""A tiny random model around a real vocabulary, for parity.rs to compare its tokens.

    python vocabulary.py TOKENIZER.model MODEL.gguf

needs the packages `gguf` and `sentencepiece`. TOKENIZER.model is one of SentencePiece, or Llama 3's list of ranks.
Real ones come with the packages `mistral-common` (`mistral_common/data/*.model.v*`) and `llama-models`
(`llama_models/llama3/tokenizer.model`).
"""

import base64
import sys

import gguf
import numpy
import sentencepiece

WIDTH, HEADS, KV_HEADS, INNER, LAYERS = 64, 4, 2, 128, 2
LLAMA3_CONTROL = [
    "<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>",
    "<|python_tag|>", "<|image|>",
]


def kind(tokenizer, token):
    if tokenizer.is_unknown(token):
        return gguf.TokenType.UNKNOWN
    if tokenizer.is_control(token):
        return gguf.TokenType.CONTROL
    if tokenizer.is_unused(token):
        return gguf.TokenType.UNUSED
    if tokenizer.is_byte(token):
        return gguf.TokenType.BYTE
    return gguf.TokenType.NORMAL


def sentencepiece_vocabulary(writer, source):
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=source)
    tokens = range(tokenizer.vocab_size())
    writer.add_tokenizer_model("llama")
    writer.add_token_list([tokenizer.id_to_piece(token).encode() for token in tokens])
    writer.add_token_scores([tokenizer.get_score(token) for token in tokens])
    writer.add_token_types([kind(tokenizer, token) for token in tokens])
    writer.add_bos_token_id(tokenizer.bos_id())
    writer.add_eos_token_id(tokenizer.eos_id())
    writer.add_unk_token_id(tokenizer.unk_id())
    return len(tokens)


def halves(ranks, token):
    """The pairs of tokens that make this one."""
    cuts = [(token[:at], token[at:]) for at in range(1, len(token))]
    return sorted((cut for cut in cuts if cut[0] in ranks and cut[1] in ranks), key=lambda cut: [ranks[half] for half in cut])


def ranked_vocabulary(writer, source):
    with open(source, "rb") as lines:
        pairs = [line.split() for line in lines if line.strip()]
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}

    def spelled(token):
        return "".join(letters[byte] for byte in token)

    tokens = [spelled(token) for token in ranks] + LLAMA3_CONTROL
    merges = [" ".join(map(spelled, pair)) for token in ranks for pair in halves(ranks, token)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * len(ranks) + [gguf.TokenType.CONTROL] * len(LLAMA3_CONTROL))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(len(ranks))
    writer.add_eos_token_id(len(ranks) + LLAMA3_CONTROL.index("<|eot_id|>"))
    return len(tokens)


def main():
    source, target = sys.argv[1:3]
    writer = gguf.GGUFWriter(target, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    with open(source, "rb") as start:
        ranked = start.read(2) == b"IQ"  # "!" in base64
    tokens = (ranked_vocabulary if ranked else sentencepiece_vocabulary)(writer, source)

    random = numpy.random.default_rng(7)

    def matrix(name, inner, rows, spread=0.3):
        writer.add_tensor(name, (random.uniform(-1, 1, (rows, inner)) * spread).astype(numpy.float32))

    def vector(name):
        writer.add_tensor(name, (1 + random.uniform(-0.2, 0.2, WIDTH)).astype(numpy.float32))

    keys = WIDTH // HEADS * KV_HEADS
    matrix("token_embd.weight", WIDTH, tokens, 1.0)
    vector("output_norm.weight")
    matrix("output.weight", WIDTH, tokens, 0.5)
    for layer in range(LAYERS):
        vector(f"blk.{layer}.attn_norm.weight")
        matrix(f"blk.{layer}.attn_q.weight", WIDTH, WIDTH)
        matrix(f"blk.{layer}.attn_k.weight", WIDTH, keys)
        matrix(f"blk.{layer}.attn_v.weight", WIDTH, keys)
        matrix(f"blk.{layer}.attn_output.weight", WIDTH, WIDTH)
        vector(f"blk.{layer}.ffn_norm.weight")
        matrix(f"blk.{layer}.ffn_gate.weight", WIDTH, INNER)
        matrix(f"blk.{layer}.ffn_up.weight", WIDTH, INNER)
        matrix(f"blk.{layer}.ffn_down.weight", INNER, WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
