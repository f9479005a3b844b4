#pragma once
// Long lists of float64 numbers that take little more memory than their numbers: they grow by
// realloc, which moves pages instead of copying them, and are sorted in place.

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <span>

namespace paddle::metrics {

class NumberList {
 public:
  NumberList() = default;
  NumberList(NumberList&& other) noexcept { *this = std::move(other); }
  NumberList& operator=(NumberList&& other) noexcept;
  NumberList(const NumberList& other) { append(other); }
  NumberList& operator=(const NumberList& other);

  void push_back(double number) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = number;
  }
  void append(std::span<const double> numbers);
  void append(std::initializer_list<double> numbers) {
    append(std::span(numbers.begin(), numbers.size()));
  }
  size_t size() const { return size_; }
  operator std::span<const double>() const { return {data_.get(), size_}; }

  /// Rising; -0 becomes 0. None of the numbers is NaN. Lists of float32 numbers need no more
  /// memory, others that of a second list.
  void sort();

 private:
  struct Release {
    void operator()(double* data) const { std::free(data); }
  };
  /// kDevice if out of memory.
  void grow(size_t size);

  std::unique_ptr<double[], Release> data_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace paddle::metrics
