// The module that decompresses files, by libarchive.

#include <archive.h>
#include <archive_entry.h>

#include <cstdio>
#include <memory>

#include "formats/compressed/module/interface.h"

#pragma GCC visibility push(default)

int paddle_module_version() { return PADDLE_ARCHIVE_VERSION; }

int paddle_archive_decompress(const char* path, paddle_archive_sink sink, void* context,
                              char* message, size_t message_size) {
  const std::unique_ptr<archive, int (*)(archive*)> file(archive_read_new(), archive_read_free);
  const auto failed = [&] {
    const char* const reason = file ? archive_error_string(file.get()) : "out of memory";
    if (message_size > 0)
      std::snprintf(message, message_size, "%s", reason ? reason : "damaged compressed file");
    return 1;
  };
  if (!file) return failed();
  archive_read_support_filter_gzip(file.get());
  archive_read_support_filter_bzip2(file.get());
  archive_read_support_filter_xz(file.get());
  archive_read_support_filter_zstd(file.get());
  archive_read_support_filter_lz4(file.get());
  archive_read_support_format_raw(file.get());
  archive_read_support_format_empty(file.get());
  constexpr size_t kBlock = size_t{1} << 18;
  archive_entry* entry = nullptr;
  if (archive_read_open_filename(file.get(), path, kBlock) != ARCHIVE_OK) return failed();
  const int first = archive_read_next_header(file.get(), &entry);
  if (first != ARCHIVE_OK && first != ARCHIVE_EOF) return failed();
  // The last filter is the file itself. A file cut short may be taken for one without compression.
  if (archive_filter_count(file.get()) < 2) return failed();
  if (first == ARCHIVE_EOF) return 0;
  for (;;) {
    const void* bytes = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int status = archive_read_data_block(file.get(), &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) return 0;
    if (status != ARCHIVE_OK) return failed();
    if (sink(context, bytes, size) != 0) return 2;
  }
}

#pragma GCC visibility pop
