#pragma once
// Returning memory to the operating system page by page.

#include <cstddef>

namespace paddle {

/// Releases the whole pages in this range. The addresses stay mapped: on the next access, pages of
/// a mapped file are read again and others are zero. Anything written to them is lost.
void release_pages(const void* data, size_t bytes);

}  // namespace paddle
