"""Protobuf messages, byte by byte, so that they can also be wrong."""


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, content):
    """A field of a message: an integer, a text, or bytes (a message is bytes)."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    if isinstance(content, str):
        content = content.encode()
    return varint(number << 3 | 2) + varint(len(content)) + content
