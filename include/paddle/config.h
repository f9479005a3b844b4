#pragma once
// Visibility and the versioned namespace of the public interface. Users write `paddle::Model`; in
// the library's symbols it is `paddle::v0::Model`, so that a program never links a library with
// another binary interface by accident.

#define PADDLE_API __attribute__((visibility("default")))

#ifndef PADDLE_BUILDING_LIBRARY  // the engine has types of the same names in namespace paddle
namespace paddle {
inline namespace v0 {}
}  // namespace paddle
#endif
