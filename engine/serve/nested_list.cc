#include "serve/nested_list.h"

#include <cmath>
#include <limits>
#include <utility>

#include "serve/api_error.h"

namespace paddle::serve {

namespace {

constexpr size_t kMaxListRank = 32;

[[noreturn]] void reject_element(const std::string& name, DType dtype, const std::string& found) {
  reject("inputs", "input '", name, "' has ", found, ", expected values of ", text(dtype));
}

/// A number as an element; an integer type holds whole numbers in its range only.
template <class T>
T element_of(double value, const std::string& name, DType dtype) {
  if constexpr (std::is_integral_v<T>) {
    // The largest double below 2^63 fits, 2^63 itself does not.
    const double low = static_cast<double>(std::numeric_limits<T>::lowest());
    const double high = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (value != std::trunc(value) || value < low || value >= high)
      reject_element(name, dtype, format_double(value));
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    const T out(static_cast<float>(value));
    if (std::isfinite(value) && !std::isfinite(static_cast<float>(out)))
      reject_element(name, dtype, format_double(value));
    return out;
  }
}

template <class T, class Integer>
requires std::is_integral_v<Integer> T element_of(Integer value, const std::string& name,
                                                  DType dtype) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!std::in_range<T>(value)) reject_element(name, dtype, std::to_string(value));
    return static_cast<T>(value);
  } else {
    return element_of<T>(static_cast<double>(value), name, dtype);
  }
}

}  // namespace

void ListBuilder::open() {
  if (rank_ && counts_.size() >= *rank_) reject_uneven();
  if (counts_.size() >= kMaxListRank)
    reject("inputs", "input '", name_, "' has more than ", kMaxListRank,
           " lists inside each other");
  counts_.push_back(0);
  if (list_.shape.size() < counts_.size()) list_.shape.push_back(-1);
}

void ListBuilder::close() {
  const size_t axis = counts_.size() - 1;
  const int64_t count = counts_.back();
  if (list_.shape[axis] >= 0 && list_.shape[axis] != count)
    reject("inputs", "input '", name_, "' has lists of ", list_.shape[axis], " and of ", count,
           " values at one level");
  list_.shape[axis] = count;
  if (count == 0 && !rank_) rank_ = counts_.size();
  counts_.pop_back();
  if (!counts_.empty()) ++counts_.back();
}

void ListBuilder::add_boolean(bool value) {
  begin(NestedList::Kind::kBooleans);
  list_.integers.push_back(value ? 1 : 0);
}

void ListBuilder::add_integer(int64_t value) {
  if (list_.kind == NestedList::Kind::kNumbers) return add_number(static_cast<double>(value));
  begin(NestedList::Kind::kIntegers);
  list_.integers.push_back(value);
}

void ListBuilder::add_large(uint64_t value) {
  if (list_.kind == NestedList::Kind::kNumbers) return add_number(static_cast<double>(value));
  list_.large.push_back(list_.integers.size());
  add_integer(static_cast<int64_t>(value));
}

void ListBuilder::add_number(double value) {
  if (list_.kind == NestedList::Kind::kIntegers) {
    list_.numbers.assign(list_.integers.begin(), list_.integers.end());
    for (const size_t at : list_.large)
      list_.numbers[at] = static_cast<double>(static_cast<uint64_t>(list_.integers[at]));
    list_.integers = {};
    list_.large = {};
    list_.kind = NestedList::Kind::kNumbers;
  }
  begin(NestedList::Kind::kNumbers);
  list_.numbers.push_back(value);
}

void ListBuilder::add_string(std::string value) {
  begin(NestedList::Kind::kStrings);
  list_.strings.push_back(std::move(value));
}

void ListBuilder::begin(NestedList::Kind kind) {
  if (!rank_) rank_ = counts_.size();
  if (counts_.size() != *rank_) reject_uneven();
  if (list_.kind == NestedList::Kind::kNone) list_.kind = kind;
  if (list_.kind != kind) reject("inputs", "input '", name_, "' has values of different kinds");
  if (!counts_.empty()) ++counts_.back();
}

void ListBuilder::reject_uneven() const {
  reject("inputs", "input '", name_, "' has lists and values at one level");
}

Array to_array(const NestedList& list, DType dtype, const std::string& name) {
  using Kind = NestedList::Kind;
  Array out = Array::empty(dtype, list.shape);
  if (list.kind == Kind::kNone) return out;
  if (list.kind == Kind::kStrings) reject_element(name, dtype, "strings");
  if (list.kind == Kind::kBooleans && !is_bool(dtype)) reject_element(name, dtype, "booleans");
  if (is_bool(dtype) && !list.large.empty())
    reject_element(name, dtype,
                   std::to_string(static_cast<uint64_t>(list.integers[list.large[0]])));
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = out.data<T>();
    if constexpr (std::is_same_v<T, bool>) {
      if (list.kind == Kind::kNumbers) reject_element(name, dtype, "numbers");
      for (const int64_t value : list.integers) {
        if (value != 0 && value != 1) reject_element(name, dtype, std::to_string(value));
        *data++ = value != 0;
      }
    } else {
      auto large = list.large.begin();
      for (size_t i = 0; i < list.integers.size(); ++i) {
        const int64_t value = list.integers[i];
        const bool is_large = large != list.large.end() && *large == i;
        if (is_large) ++large;
        *data++ = is_large ? element_of<T>(static_cast<uint64_t>(value), name, dtype)
                           : element_of<T>(value, name, dtype);
      }
      for (const double value : list.numbers) *data++ = element_of<T>(value, name, dtype);
    }
  });
  return out;
}

}  // namespace paddle::serve
