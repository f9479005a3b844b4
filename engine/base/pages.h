#pragma once
// Memory that is given back to the system page by page.

#include <cstddef>

namespace paddle {

/// Gives back the memory of the whole pages in this range. Its addresses stay taken: when next
/// touched, pages of a mapped file are read again and others are zero; what was written is lost.
void forget_pages(const void* data, size_t bytes);

}  // namespace paddle
