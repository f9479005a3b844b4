// Fusion groups. The text of a group (group_source.cc) follows; it defines
//   Index                      an unsigned type that holds the number of elements
//   Arguments                  addresses, sizes and strides
//   Accumulators               one member for each reduction
//   elements<kWidth>(arguments, first, accumulators)
//                              computes and stores kWidth elements from `first` on, in row-major
//                              order, and folds them
// and the kernels, as calls of the functions below.

PADDLE_DEVICE uint32_t quotient(uint32_t n, Divider d) { return divide(n, d); }
/// Of more than 2^31 elements; the divisor is in both halves.
PADDLE_DEVICE uint64_t quotient(uint64_t n, Divider d) {
  return n / ((uint64_t)d.multiplier << 32 | d.divisor);
}
PADDLE_DEVICE uint32_t size_of(Divider d, uint32_t) { return d.divisor; }
PADDLE_DEVICE uint64_t size_of(Divider d, uint64_t) {
  return (uint64_t)d.multiplier << 32 | d.divisor;
}

/// kWidth elements at a pointer, 16 bytes at a time.
template <int kWidth, class T>
PADDLE_DEVICE Pack<T, kWidth> load_pack(const T* from) {
  return *(const Pack<T, kWidth>*)from;
}
template <int kWidth, class T>
PADDLE_DEVICE void store_pack(T* to, const Pack<T, kWidth>& pack) {
  *(Pack<T, kWidth>*)to = pack;
}
