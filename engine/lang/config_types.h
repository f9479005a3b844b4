#pragma once
// The types of config/ that the language is written in: nodes of a document, where they come from,
// and the collector of errors.

#include "config/diagnostics.h"
#include "config/document.h"
#include "config/overrides.h"
#include "config/source.h"

namespace paddle::lang {

using config::Diagnostics;
using config::Entry;
using config::kMaxNesting;
using config::Node;
using config::Override;
using config::SourceKind;
using config::SourcePosition;
using config::SourceText;

}  // namespace paddle::lang
