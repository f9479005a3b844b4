#include "decoding/stop_text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace paddle::decoding {
namespace {

using Strings = std::vector<std::string>;

/// The text passed through for each piece, and at the end.
Strings filtered(const Strings& stops, const Strings& pieces) {
  StopFilter filter(stops);
  Strings out;
  for (const std::string& piece : pieces) out.push_back(filter.add(piece));
  out.push_back(filter.is_stopped() ? "stopped" : filter.finish());
  return out;
}

TEST(StopFilter, HoldsBackWhatMayBeginAStopText) {
  EXPECT_EQ(filtered({}, {"a", "b"}), (Strings{"a", "b", ""}));
  EXPECT_EQ(filtered({"END"}, {"aE", "N", "x"}), (Strings{"a", "", "ENx", ""}));
  EXPECT_EQ(filtered({"END"}, {"aE", "N", "Db", "c"}), (Strings{"a", "", "", "", "stopped"}));
  EXPECT_EQ(filtered({"END"}, {"a EN"}), (Strings{"a ", "EN"}));
  EXPECT_EQ(filtered({"END"}, {"a END b END"}), (Strings{"a ", "stopped"}));
  // A prefix within a prefix.
  EXPECT_EQ(filtered({"aab"}, {"a", "a", "a", "b"}), (Strings{"", "", "a", "", "stopped"}));
}

TEST(StopFilter, TheFirstCompleteStopTextWins) {
  EXPECT_EQ(filtered({"cd", "b"}, {"abcd"}), (Strings{"a", "stopped"}));
  EXPECT_EQ(filtered({"c", "bc"}, {"abcd"}), (Strings{"a", "stopped"}));  // the longest of those
  EXPECT_EQ(filtered({"bcx", "c"}, {"a", "b", "c"}), (Strings{"a", "", "b", "stopped"}));
}

TEST(StopFilter, DoesNotDependOnThePieces) {
  const std::string text = "abababcabcxaabab";
  for (const Strings& stops : {Strings{"abc"}, Strings{"bab", "abc"}, Strings{"xaaba", "q"},
                               Strings{"cabcx", "abcx"}, Strings{"zz", "abb"}}) {
    StopFilter whole(stops);
    std::string wanted = whole.add(text);
    wanted += whole.finish();
    for (size_t cut = 1; cut < text.size(); ++cut) {
      StopFilter filter(stops);
      std::string got;
      for (size_t at = 0; at < text.size(); at += cut) got += filter.add(text.substr(at, cut));
      got += filter.finish();
      EXPECT_EQ(got, wanted) << cut;
    }
  }
}

TEST(StopFilter, RejectsAnEmptyText) { EXPECT_THROW(StopFilter({"a", ""}), Error); }

}  // namespace
}  // namespace paddle::decoding
