"""Draws docs/images/speed.svg from docs/performance/benchmarks.md: how many times as fast as a peer.

usage: python3 tests/bench/chart.py [PAGE [PICTURE]]
"""
import sys
from html import escape

# Lines of the table, with the peer to draw and the label.
BARS = [
    ("Training, against PyTorch", [
        ("resnet50", "torch", "ResNet-50, batch 16"),
        ("bert_base", "torch", "BERT base, 8 × 128"),
        ("gpt2_124m", "torch", "GPT-2 124M, 4 × 256"),
        ("gpt2_124m_bf16", "torch", "GPT-2 124M in bfloat16"),
        ("lstm_lm", "torch", "LSTM language model"),
        ("deepfm", "torch", "DeepFM, batch 2,048"),
    ]),
    ("Inference, against ONNX Runtime", [
        ("infer_resnet50", "ort", "ResNet-50, batch 16"),
        ("infer_resnet50_1", "ort", "ResNet-50, batch 1"),
        ("infer_bert", "ort", "BERT base, batch 8"),
        ("onnx_gpt_cache", "ort", "GPT with KV cache (ONNX file)"),
        ("onnx_resnet50_int8_1", "ort", "ResNet-50 int8 (ONNX file)"),
        ("onnx_mobilenet_v3_1", "ort", "MobileNet v3 (ONNX file)"),
    ]),
]
INK, SOFT, OURS, PEER = "#1f2328", "#57606a", "#2f6fed", "#b6bcc4"


def ratios(page):
    """(line, peer) → how many times as fast as the peer."""
    out = {}
    with open(page, encoding="utf-8") as f:
        for text in f:
            cells = [c.strip() for c in text.strip().strip("|").split("|")]
            if len(cells) < 6:
                continue
            try:
                out[cells[0], cells[2]] = float(cells[5])
            except ValueError:
                pass  # the header, or a line that has no times
    return out


def draw(known):
    left, scale, height = 250, 130, 30
    parts, y = [], 16
    for title, bars in BARS:
        y += 26
        parts.append(f'<text x="16" y="{y}" font-weight="600" fill="{INK}">{escape(title)}</text>')
        y += 12
        for line, peer, label in bars:
            ratio = known.get((line, peer))
            if ratio is None:
                continue
            width = scale * min(ratio, 2.6)
            parts.append(f'<text x="{left - 12}" y="{y + 17}" text-anchor="end" fill="{SOFT}">{escape(label)}</text>')
            parts.append(f'<rect x="{left}" y="{y + 3}" width="{width:.0f}" height="9" rx="2" fill="{OURS}"/>')
            parts.append(f'<rect x="{left}" y="{y + 14}" width="{scale}" height="6" rx="2" fill="{PEER}"/>')
            parts.append(f'<text x="{left + max(width, scale) + 8:.0f}" y="{y + 17}" fill="{INK}">{ratio:.2f}×</text>')
            y += height
    y += 24
    parts.append(f'<text x="16" y="{y}" fill="{SOFT}" font-size="12">Blue: this toolchain; grey: the peer (1×). '
                 'Longer is faster; both on the same two cores.</text>')
    y += 16
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{y}" viewBox="0 0 680 {y}" '
            f'font-family="system-ui, sans-serif" font-size="14">\n'
            f'<rect width="680" height="{y}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    page = sys.argv[1] if len(sys.argv) > 1 else "docs/performance/benchmarks.md"
    picture = sys.argv[2] if len(sys.argv) > 2 else "docs/images/speed.svg"
    known = ratios(page)
    if not known:
        sys.exit(f"{page}: no line of the table has a ratio")
    with open(picture, "w", encoding="utf-8") as f:
        f.write(draw(known))


main()
