"""A BERT of two layers with random weights and a WordPiece vocabulary, saved as transformers saves models."""

from __future__ import annotations

from pathlib import Path

WORDS = ["query", "passage", "hide", "soft", "keyboard", "read", "file", "path", "open", "close", "view", "a", "void"]


def write(folder: Path) -> Path:
    """Write the model into a new folder; gives it back. Needs the extra `transformers`."""
    import torch
    import transformers

    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "return", *WORDS, *":(){}.;"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    torch.manual_seed(5)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder
