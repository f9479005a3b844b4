#pragma once
// Atoms: the indivisible factors of dims. A dim of 384 that a reshape takes apart into 3 x 4 x 32
// is made of three atoms, and wherever the rules of operations say that two dims correspond, their
// atoms are the same. Splitting an atom over a mesh axis splits all dims that contain it, which is
// how a decision about one value reaches all others.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paddle::partition {

/// The atoms of a dim, from the outermost to the innermost. Dims of size 1 have none.
using AtomList = std::vector<int>;

class Atoms {
 public:
  /// Atoms of a dim of this size: none or one.
  AtomList make(int64_t size);
  /// The list with atoms replaced by what became of them.
  AtomList resolve(const AtomList& list) const;
  /// Declares that two lists of atoms, of the same product, correspond in row-major order; atoms
  /// are taken apart where sizes require it. Returns false if they cannot be aligned: the atoms
  /// from there on stay apart and must not be split over a mesh axis.
  bool unify(const AtomList& a, const AtomList& b);
  int64_t size(int atom) const { return nodes_[static_cast<size_t>(atom)].size; }
  int count() const { return static_cast<int>(nodes_.size()); }
  int64_t product(const AtomList& list) const;

 private:
  struct Node {
    int64_t size = 1;
    std::vector<int> becomes;  ///< another atom, or several factors; empty if it still stands
  };
  void take_apart(int atom, int64_t outer);
  void collect(int atom, AtomList& out) const;
  std::vector<Node> nodes_;
};

}  // namespace paddle::partition
