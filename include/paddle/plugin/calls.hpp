#pragma once
// What kernels and compilers of plug-ins get: the request and the run of an operation; part of
// plugin.hpp.

#include <cstdint>
#include <string_view>
#include <vector>

#include "paddle/plugin/plugin.h"

namespace paddle::plugin {

/// The shapes and attributes of an operation that is prepared.
class Request {
 public:
  Request(const paddle_host* host, const paddle_request* request) : host_(host), raw_(request) {}
  uint32_t operands() const { return raw_->operand_count; }
  const paddle_view& operand(uint32_t i) const { return *raw_->operands[i]; }
  const paddle_view& result(uint32_t i) const { return *raw_->results[i]; }
  /// Attributes; 0, "" or an empty list where there is none of the name.
  double number(const char* name) const { return host_->attr_float(raw_, index(name)); }
  int64_t integer(const char* name) const { return host_->attr_int(raw_, index(name)); }
  bool flag(const char* name) const { return host_->attr_bool(raw_, index(name)) != 0; }
  std::string_view text(const char* name) const {
    const char* const value = host_->attr_text(raw_, index(name));
    return value ? value : "";
  }
  std::vector<int64_t> integers(const char* name) const {
    const int64_t* values = nullptr;
    const size_t count = host_->attr_ints(raw_, index(name), &values);
    return {values, values + count};
  }

 private:
  int32_t index(const char* name) const { return host_->attr_index(raw_, name); }
  const paddle_host* host_;
  const paddle_request* raw_;
};

/// The arguments of a run.
class Run {
 public:
  /// Shapes, dtypes and what `Kernel::prepare` made, which stay the same in all runs.
  struct Layout {
    std::vector<std::vector<int64_t>> operands, results;
    std::vector<paddle_dtype> operand_dtypes;
  };
  Run(const paddle_host* host, const paddle_run* run, const Layout* layout)
      : host_(host), raw_(run), layout_(layout) {}
  /// The elements of an operand; null if it is absent.
  template <class T>
  const T* in(uint32_t i) const {
    return static_cast<const T*>(raw_->operands[i]);
  }
  /// The elements of a result; null if nothing uses it.
  template <class T>
  T* out(uint32_t i) const {
    return static_cast<T*>(raw_->results[i]);
  }
  const std::vector<int64_t>& shape(uint32_t operand) const { return layout_->operands[operand]; }
  const std::vector<int64_t>& result_shape(uint32_t i) const { return layout_->results[i]; }
  paddle_dtype dtype(uint32_t operand) const { return layout_->operand_dtypes[operand]; }
  /// The number of elements of an operand.
  int64_t count(uint32_t operand) const {
    int64_t n = 1;
    for (const int64_t size : shape(operand)) n *= size;
    return n;
  }
  /// The number of results, and of elements of one of them.
  uint32_t results() const { return raw_->result_count; }
  int64_t result_count(uint32_t i) const {
    int64_t n = 1;
    for (const int64_t size : result_shape(i)) n *= size;
    return n;
  }
  /// Calls body(begin, end) over ranges of at least `grain` elements that cover 0 to `count`.
  template <class Body>
  void parallel(int64_t count, int64_t grain, const Body& body) const {
    host_->parallel_for(
        raw_->call, count, grain,
        [](void* context, int64_t begin, int64_t end) {
          (*static_cast<const Body*>(context))(begin, end);
        },
        const_cast<Body*>(&body));
  }

 private:
  const paddle_host* host_;
  const paddle_run* raw_;
  const Layout* layout_;
};

}  // namespace paddle::plugin
