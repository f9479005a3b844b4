#pragma once
// The C interface of the module that reads HDF5 files (libpaddle_hdf5.so). The engine loads the
// module on first use, and the module does not depend on the engine.

#include <cstddef>
#include <cstdint>

/// Grows with each change of this interface.
#define PADDLE_HDF5_VERSION 2

extern "C" {

/// PADDLE_HDF5_VERSION of the module (base/module.h).
int paddle_module_version();

/// An open file; null with the reason in `message`, truncated.
void* paddle_hdf5_open(const char* path, char* message, size_t message_size);
/// The same for a file in memory, which is copied.
void* paddle_hdf5_open_image(void* bytes, size_t size, char* message, size_t message_size);
void paddle_hdf5_close(void* file);

/// A dataset: its path without the leading slash, the class of its elements ('f' float, 'i' signed,
/// 'u' unsigned, 'b' bool, '?' anything else), their size in bytes, and its shape. A soft or
/// external link has the class 'l' and no shape.
typedef void (*paddle_hdf5_visit)(void* context, const char* name, char type, size_t bytes,
                                  int rank, const uint64_t* shape);
/// Visits every dataset and link. 0, or 1 with the reason in `message`.
int paddle_hdf5_list(void* file, paddle_hdf5_visit visit, void* context, char* message,
                     size_t message_size);
/// Reads a dataset of numbers in the byte order of the machine; `bytes` is the size of `to`. 0, or
/// 1 with the reason in `message`.
int paddle_hdf5_read(void* file, const char* name, void* to, size_t bytes, char* message,
                     size_t message_size);
}
