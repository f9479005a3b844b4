#pragma once
// Attributes of an operation: compile-time parameters such as axis, stride and dtype. They are
// stored in schema order, so that IR, model language and tables handle all operations generically;
// opgen generates a typed struct per operation for hand-written rules.

#include <complex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace paddle {

/// One attribute's value. An integer may be symbolic (a Dim).
class AttrValue {
 public:
  using List = std::vector<AttrValue>;

  AttrValue() = default;  ///< none
  AttrValue(bool v) : value_(v) {}
  AttrValue(int v) : value_(Dim(v)) {}
  AttrValue(int64_t v) : value_(Dim(v)) {}
  AttrValue(Dim v) : value_(std::move(v)) {}
  AttrValue(double v) : value_(v) {}
  AttrValue(std::complex<double> v) : value_(v) {}
  AttrValue(const char* v) : value_(std::string(v)) {}
  AttrValue(std::string v) : value_(std::move(v)) {}
  AttrValue(DType v) : value_(v) {}
  AttrValue(List v) : value_(std::move(v)) {}
  template <class T>
  requires(!std::is_same_v<T, AttrValue>) AttrValue(const std::vector<T>& values)
      : value_(List(values.begin(), values.end())) {}
  template <class T>
  AttrValue(const std::optional<T>& v) {
    if (v) *this = AttrValue(*v);
  }

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<Dim>(value_); }
  bool is_float() const { return std::holds_alternative<double>(value_); }
  bool is_complex() const { return std::holds_alternative<std::complex<double>>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_dtype() const { return std::holds_alternative<DType>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }

  // Conversions; each throws kUsage with the value if it is of another kind.
  bool as_bool() const;
  int64_t as_int() const;
  const Dim& as_dim() const;
  double as_double() const;                 ///< integers widen
  std::complex<double> as_complex() const;  ///< real numbers widen
  const std::string& as_string() const;
  DType as_dtype() const;
  const List& as_list() const;
  std::vector<int64_t> as_ints() const;  ///< a single integer is a list of one
  Shape as_dims() const;
  std::vector<double> as_doubles() const;
  std::vector<std::string> as_strings() const;

  bool operator==(const AttrValue& other) const;
  std::string text()
      const;  ///< as in the IR's text form: `[1, 2]`, `'SAME'`, `1.0`, `batch`, `none`
  /// Parses the output of `text`. Bare words are dtypes if they name one, else dims.
  static AttrValue parse(std::string_view text);

 private:
  std::variant<std::monostate, bool, Dim, double, std::string, DType, List, std::complex<double>>
      value_;
};

struct Attrs {
  std::vector<AttrValue> values;    ///< in schema order
  std::vector<int32_t> list_sizes;  ///< lengths of the variadic operands, in schema order
  const AttrValue& operator[](size_t i) const { return values[i]; }
  AttrValue& operator[](size_t i) { return values[i]; }
  bool operator==(const Attrs& other) const = default;
};

}  // namespace paddle
