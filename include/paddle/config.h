#pragma once
// Visibility and the versioned namespace of the public interface. Users write `paddle::Model`; in
// the library's symbols it is `paddle::v0::Model`, so that a program never links a library with
// another binary interface by accident.

#define PADDLE_API __attribute__((visibility("default")))

/// The engine has types of the same names in namespace paddle, so v0 is not inline in its sources.
#ifdef PADDLE_BUILDING_LIBRARY
#define PADDLE_INLINE
#else
#define PADDLE_INLINE inline
#endif
