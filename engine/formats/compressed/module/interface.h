#pragma once
// The C interface of the module that decompresses files (libpaddle_archive.so). The engine loads
// the module on first use, and the module does not depend on the engine.

#include <cstddef>
#include <cstdint>

/// Grows with each change of this interface.
#define PADDLE_ARCHIVE_VERSION 1

extern "C" {

/// PADDLE_ARCHIVE_VERSION of the module (base/module.h).
int paddle_module_version();

/// Takes the next bytes of a file; 0 to continue.
typedef int (*paddle_archive_sink)(void* context, const void* bytes, size_t size);
/// Decompresses a file by gzip, bzip2, xz, zstd or lz4, whichever its content says, and passes what
/// it holds to `sink` in blocks. 0; 1 with the reason in `message`, truncated; 2 if `sink` ended
/// it.
int paddle_archive_decompress(const char* path, paddle_archive_sink sink, void* context,
                              char* message, size_t message_size);
}
