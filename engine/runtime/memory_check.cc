// Detects reads of dead memory and writes out of bounds: guards around live buffers, NaN in dead
// ones.

#include <algorithm>
#include <cstring>

#include "runtime/plan.h"

namespace paddle::runtime {
namespace {

constexpr auto kPattern = std::byte{0xa5};  // bytes of guards
constexpr int kDead = 0xff;                 // a NaN in every float type

}  // namespace

MemoryCheck::MemoryCheck(const std::vector<Buffer>& buffers, int positions)
    : buffers_(buffers), dying_(static_cast<size_t>(positions)), armed_(buffers.size()) {
  const auto at = [&](int position) {
    return static_cast<size_t>(std::clamp(position, 0, positions - 1));
  };
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind != BufferKind::kArena || buffers[i].bytes == 0) continue;
    dying_[at(buffers[i].last)].push_back(static_cast<int>(i));
  }
}

void MemoryCheck::begin(std::byte* arena, size_t bytes) {
  std::memset(arena, kDead, bytes);
  armed_.assign(armed_.size(), false);
}

void MemoryCheck::before(const Instruction& instruction, std::byte* arena) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& b = buffers_[i];
    const bool alive = b.first <= instruction.position && instruction.position <= b.last;
    // Dead values: those that the previous iteration of a loop defined later in its body, and those
    // whose last reader (a view) needed no instruction.
    if (!alive) armed_[i] = false;
    if (armed_[i] || !alive || b.kind != BufferKind::kArena || b.bytes == 0) continue;
    std::fill_n(arena + b.offset - kGuard, kGuard, kPattern);
    std::fill_n(arena + b.offset + b.bytes, kGuard, kPattern);
    armed_[i] = true;
  }
}

void MemoryCheck::expect_guard(const std::byte* at, size_t bytes, const Instruction& instruction,
                               const std::string& where) const {
  if (std::all_of(at, at + bytes, [](std::byte b) { return b == kPattern; })) return;
  fail(ErrorCode::kInternal, instruction.operation ? instruction.operation->op->name() : "copy",
       " (", instruction.kernel ? instruction.kernel->implementation() : "no kernel", ") wrote ",
       where);
}

void MemoryCheck::after(const Instruction& instruction, std::byte* arena, bool last) {
  const bool nested = !instruction.blocks.empty();  // its blocks were checked already
  for (size_t i = 0; !nested && i < buffers_.size(); ++i) {
    if (!armed_[i]) continue;
    const Buffer& b = buffers_[i];
    expect_guard(arena + b.offset - kGuard, kGuard, instruction, str("before '", b.label, "'"));
    expect_guard(arena + b.offset + b.bytes, kGuard, instruction, str("beyond '", b.label, "'"));
  }
  if (!last) return;
  for (const int i : dying_[static_cast<size_t>(instruction.position)]) {
    const Buffer& b = buffers_[static_cast<size_t>(i)];
    std::memset(arena + b.offset, kDead, b.bytes);
    armed_[static_cast<size_t>(i)] = false;
  }
}

}  // namespace paddle::runtime
