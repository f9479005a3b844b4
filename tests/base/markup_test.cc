#include "base/markup.h"

#include <gtest/gtest.h>

namespace paddle {
namespace {

TEST(Markup, Escapes) {
  EXPECT_EQ(escape_markup("a<b> & \"c\" 'd' é"), "a&lt;b&gt; &amp; &quot;c&quot; 'd' é");
  EXPECT_EQ(escape_markup("x\n\ty\r"), "x\n\ty\r");
  EXPECT_EQ(escape_markup(std::string_view("a\0b\x1b[0m", 7)), "a b [0m");
}

}  // namespace
}  // namespace paddle
