#include "text/grammar/grammar.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace paddle::grammar {

int32_t Builder::add(Node node) {
  if (grammar_.nodes.size() >= kMaxNodes)
    fail(ErrorCode::kUsage, what_, ": is too large, with more than ", kMaxNodes, " states");
  grammar_.nodes.push_back(node);
  return static_cast<int32_t>(grammar_.nodes.size() - 1);
}

Part Builder::nothing() {
  const int32_t node = add({});
  return {node, node};
}

Part Builder::bytes(uint8_t low, uint8_t high) {
  const int32_t node = add({Node::Kind::kBytes, low, high, -1, -1});
  return {node, node};
}

Part Builder::text(std::string_view bytes_of_text) {
  Part out = nothing();
  for (const char c : bytes_of_text) {
    const auto byte = static_cast<uint8_t>(c);
    const Part next = bytes(byte, byte);
    at(out.last).next = next.first;
    out.last = next.last;
  }
  return out;
}

Part Builder::sequence(const std::vector<Part>& parts) {
  if (parts.empty()) return nothing();
  Part out = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    at(out.last).next = parts[i].first;
    out.last = parts[i].last;
  }
  return out;
}

Part Builder::choice(const std::vector<Part>& parts) {
  ensure(!parts.empty(), "a choice of nothing");
  if (parts.size() == 1) return parts[0];
  const int32_t end = add({});
  for (const Part& part : parts) at(part.last).next = end;
  int32_t first = parts.back().first;
  for (size_t i = parts.size() - 1; i-- > 0;)
    first = add({Node::Kind::kSplit, 0, 0, parts[i].first, first});
  return {first, end};
}

Part Builder::optional(Part part) {
  const int32_t end = add({});
  at(part.last).next = end;
  return {add({Node::Kind::kSplit, 0, 0, part.first, end}), end};
}

Part Builder::star(Part part) {
  const int32_t end = add({});
  const int32_t split = add({Node::Kind::kSplit, 0, 0, part.first, end});
  at(part.last).next = split;
  return {split, end};
}

Part Builder::repeat(Part part, int64_t least, int64_t most) {
  if (most == 0) return nothing();
  std::vector<Part> parts;
  // Copies are made before the original is used.
  std::vector<Part> copies;
  const int64_t count = most < 0 ? least + 1 : most;
  for (int64_t i = 1; i < count; ++i) copies.push_back(copy(part));
  copies.push_back(part);
  for (int64_t i = 0; i < least; ++i) parts.push_back(copies[static_cast<size_t>(i)]);
  if (most < 0) {
    parts.push_back(star(copies[static_cast<size_t>(least)]));
    return sequence(parts);
  }
  // x x (x (x)?)?: from the inside out.
  Part tail{-1, -1};
  for (int64_t i = most; i-- > least;) {
    const Part each = copies[static_cast<size_t>(i)];
    tail = optional(tail.first < 0 ? each : sequence({each, tail}));
  }
  if (tail.first >= 0) parts.push_back(tail);
  return sequence(parts);
}

Part Builder::copy(Part part) {
  std::unordered_map<int32_t, int32_t> copies;
  std::vector<int32_t> open = {part.first};
  const auto copy_of = [&](int32_t node) {
    const auto found = copies.find(node);
    if (found != copies.end()) return found->second;
    const Node original = at(node);
    const int32_t fresh = add(original);
    copies[node] = fresh;
    open.push_back(node);
    return fresh;
  };
  const int32_t first = copy_of(part.first);
  while (!open.empty()) {
    const int32_t node = open.back();
    open.pop_back();
    const Node original = at(node);
    const int32_t fresh = copies.at(node);
    if (node == part.last) {
      at(fresh).next = -1;
    } else if (original.next >= 0) {
      const int32_t next = copy_of(original.next);
      at(fresh).next = next;
    }
    // The other of a call is a rule, which is shared.
    if (original.kind == Node::Kind::kSplit) {
      const int32_t other = copy_of(original.other);
      at(fresh).other = other;
    }
  }
  return {first, copies.at(part.last)};
}

Part Builder::call(int32_t rule) {
  const int32_t node = add({Node::Kind::kCall, 0, 0, -1, rule});
  return {node, node};
}

int32_t Builder::new_rule() {
  grammar_.rules.push_back(-1);
  return static_cast<int32_t>(grammar_.rules.size() - 1);
}

void Builder::define(int32_t rule, Part part) {
  const int32_t end = add({Node::Kind::kReturn, 0, 0, -1, -1});
  at(part.last).next = end;
  grammar_.rules[static_cast<size_t>(rule)] = part.first;
}

Part Builder::characters(uint32_t low, uint32_t high) {
  std::vector<Part> parts;
  // Ranges whose ends have as many bytes, split until each byte varies by itself.
  const auto add_range = [&](const auto& self, uint32_t from, uint32_t to, int count) -> void {
    if (from > to) return;
    // The range of code points that share all but the last `i` bytes.
    for (int i = 1; i < count; ++i) {
      const uint32_t block = (uint32_t{1} << (6 * i)) - 1;
      if ((from & ~block) == (to & ~block)) continue;
      if ((from & block) != 0) {
        self(self, from, from | block, count);
        self(self, (from | block) + 1, to, count);
        return;
      }
      if ((to & block) != block) {
        self(self, from, (to & ~block) - 1, count);
        self(self, to & ~block, to, count);
        return;
      }
    }
    const auto encoded = [&](uint32_t code) {
      std::vector<uint8_t> out;
      if (count == 1) return std::vector<uint8_t>{static_cast<uint8_t>(code)};
      constexpr uint32_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
      out.push_back(static_cast<uint8_t>(kLead[count] | (code >> (6 * (count - 1)))));
      for (int i = count - 2; i >= 0; --i)
        out.push_back(static_cast<uint8_t>(0x80 | ((code >> (6 * i)) & 0x3F)));
      return out;
    };
    const auto first = encoded(from), last = encoded(to);
    std::vector<Part> each;
    for (size_t i = 0; i < first.size(); ++i) each.push_back(bytes(first[i], last[i]));
    parts.push_back(sequence(each));
  };
  const auto clipped = [&](uint32_t from, uint32_t to, int count) {
    add_range(add_range, std::max(low, from), std::min(high, to), count);
  };
  clipped(0, 0x7F, 1);
  clipped(0x80, 0x7FF, 2);
  clipped(0x800, 0xD7FF, 3);
  clipped(0xE000, 0xFFFF, 3);
  clipped(0x10000, 0x10FFFF, 4);
  if (parts.empty()) fail(ErrorCode::kUsage, what_, ": a range of characters is empty");
  return choice(parts);
}

}  // namespace paddle::grammar
