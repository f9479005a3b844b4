#include "partition/atoms.h"

namespace paddle::partition {

AtomList Atoms::make(int64_t size) {
  if (size == 1) return {};
  nodes_.push_back({size, {}});
  return {count() - 1};
}

void Atoms::collect(int atom, AtomList& out) const {
  const Node& node = nodes_[static_cast<size_t>(atom)];
  if (node.becomes.empty()) out.push_back(atom);
  for (const int next : node.becomes) collect(next, out);
}

AtomList Atoms::resolve(const AtomList& list) const {
  AtomList out;
  for (const int atom : list) collect(atom, out);
  return out;
}

void Atoms::take_apart(int atom, int64_t outer) {
  const int64_t inner = size(atom) / outer;
  const int first = make(outer)[0], second = make(inner)[0];
  nodes_[static_cast<size_t>(atom)].becomes = {first, second};
}

int64_t Atoms::product(const AtomList& list) const {
  int64_t out = 1;
  for (const int atom : list) out *= size(atom);
  return out;
}

bool Atoms::unify(const AtomList& first, const AtomList& second) {
  for (size_t i = 0;; ++i) {
    // Each round makes the i-th atoms the same; earlier ones stay as they are.
    AtomList a = resolve(first), b = resolve(second);
    if (i >= a.size() || i >= b.size()) return a.size() == b.size();
    const int x = a[i], y = b[i];
    if (x == y) continue;
    const int64_t sx = size(x), sy = size(y);
    if (sx == 0 || sy == 0) return sx == sy && i + 1 == a.size() && i + 1 == b.size();
    if (sx < sy) {
      if (sy % sx != 0) return false;
      take_apart(y, sx);
    } else if (sy < sx) {
      if (sx % sy != 0) return false;
      take_apart(x, sy);
    }
    a = resolve(first);
    b = resolve(second);
    if (a[i] == b[i]) continue;
    if (size(a[i]) != size(b[i])) return false;  // an atom that occurs on both sides
    nodes_[static_cast<size_t>(a[i])].becomes = {b[i]};
  }
}

}  // namespace paddle::partition
