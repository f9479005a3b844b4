#include "metrics/number_list.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paddle::metrics {
namespace {

/// Unsigned numbers that rise as the floating-point ones do.
template <class Bits, class Number>
Bits order_of(Number value) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const auto bits = std::bit_cast<Bits>(value == 0 ? Number{0} : value);
  return bits & kSign ? ~bits : bits | kSign;
}
template <class Number, class Bits>
Number number_of(Bits order) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  return std::bit_cast<Number>(order & kSign ? order & ~kSign : ~order);
}

/// Numbers of type T in memory that may also hold others.
template <class T>
class Cells {
 public:
  explicit Cells(std::byte* memory) : memory_(memory) {}
  T operator[](size_t i) const {
    T out;
    std::memcpy(&out, memory_ + i * sizeof(T), sizeof(T));
    return out;
  }
  void set(size_t i, T value) { std::memcpy(memory_ + i * sizeof(T), &value, sizeof(T)); }

 private:
  std::byte* memory_;
};

/// Sorts by digits from the lowest, with `other` as the second place. Digits that all numbers share
/// cost no pass. True if the result is in the second place.
template <class Bits>
bool sort_digits(Cells<Bits> now, Cells<Bits> other, size_t size) {
  constexpr size_t kBits = 11, kBuckets = size_t{1} << kBits;
  constexpr size_t kDigits = (8 * sizeof(Bits) + kBits - 1) / kBits;
  const auto digit_of = [](Bits order, size_t digit) {
    return static_cast<size_t>(order >> (digit * kBits)) & (kBuckets - 1);
  };
  std::vector<std::array<size_t, kBuckets>> places(kDigits);
  for (size_t i = 0; i < size; ++i)
    for (size_t digit = 0; digit < kDigits; ++digit) ++places[digit][digit_of(now[i], digit)];
  bool is_second = false;
  for (size_t digit = 0; digit < kDigits; ++digit) {
    auto& place = places[digit];
    if (place[digit_of(now[0], digit)] == size) continue;
    size_t next = 0;
    for (size_t& each : place) next += std::exchange(each, next);
    for (size_t i = 0; i < size; ++i) other.set(place[digit_of(now[i], digit)]++, now[i]);
    std::swap(now, other);
    is_second = !is_second;
  }
  return is_second;
}

/// The halves of the list are the two places. Conversions write only where they have read before.
void sort_floats(std::byte* memory, size_t size) {
  Cells<double> numbers(memory);
  Cells<uint32_t> first(memory), second(memory + size * sizeof(uint32_t));
  for (size_t i = 0; i < size; ++i)
    first.set(i, order_of<uint32_t>(static_cast<float>(numbers[i])));
  if (sort_digits(first, second, size))
    for (size_t i = 0; i < size; ++i) numbers.set(i, number_of<float>(second[i]));
  else
    for (size_t i = size; i-- > 0;) numbers.set(i, number_of<float>(first[i]));
}

void sort_doubles(std::byte* memory, size_t size) {
  Cells<double> numbers(memory);
  Cells<uint64_t> first(memory);
  std::vector<std::byte> other(size * sizeof(uint64_t));
  Cells<uint64_t> second(other.data());
  for (size_t i = 0; i < size; ++i) first.set(i, order_of<uint64_t>(numbers[i]));
  const Cells<uint64_t> sorted = sort_digits(first, second, size) ? second : first;
  for (size_t i = 0; i < size; ++i) numbers.set(i, number_of<double>(sorted[i]));
}

}  // namespace

NumberList& NumberList::operator=(NumberList&& other) noexcept {
  data_ = std::move(other.data_);
  size_ = std::exchange(other.size_, 0);
  capacity_ = std::exchange(other.capacity_, 0);
  return *this;
}

NumberList& NumberList::operator=(const NumberList& other) {
  if (this != &other) *this = NumberList(other);
  return *this;
}

void NumberList::grow(size_t size) {
  const size_t capacity = std::max({size, 2 * capacity_, size_t{16}});
  void* const data = capacity <= SIZE_MAX / sizeof(double)
                         ? std::realloc(data_.get(), capacity * sizeof(double))
                         : nullptr;
  if (!data) fail(ErrorCode::kDevice, "out of memory: cannot keep ", capacity, " numbers");
  static_cast<void>(data_.release());
  data_.reset(static_cast<double*>(data));
  capacity_ = capacity;
}

void NumberList::append(std::span<const double> numbers) {
  if (numbers.empty()) return;
  if (numbers.size() > capacity_ - size_) grow(size_ + numbers.size());
  std::copy(numbers.begin(), numbers.end(), data_.get() + size_);
  size_ += numbers.size();
}

void NumberList::sort() {
  constexpr size_t kLong = 4096;
  const std::span<double> numbers(data_.get(), size_);
  if (std::is_sorted(numbers.begin(), numbers.end())) return;
  if (size_ < kLong) return std::sort(numbers.begin(), numbers.end());
  const bool is_float32 = std::all_of(numbers.begin(), numbers.end(), [](double number) {
    return static_cast<double>(static_cast<float>(number)) == number;
  });
  (is_float32 ? sort_floats : sort_doubles)(reinterpret_cast<std::byte*>(data_.get()), size_);
}

}  // namespace paddle::metrics
