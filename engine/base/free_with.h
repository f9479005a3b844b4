#pragma once
// Owners of what a C library allocates: std::unique_ptr<T, FreeWith<function>>.

namespace paddle {

template <auto function>
struct FreeWith {
  template <class T>
  void operator()(T* pointer) const {
    function(pointer);
  }
};

}  // namespace paddle
