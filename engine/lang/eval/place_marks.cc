#include "lang/eval/place_marks.h"

namespace paddle::lang {
namespace {
thread_local int kept_marks = 0;
}  // namespace

KeepMarksScope::KeepMarksScope() { ++kept_marks; }
KeepMarksScope::~KeepMarksScope() { --kept_marks; }
bool KeepMarksScope::active() { return kept_marks > 0; }

}  // namespace paddle::lang
