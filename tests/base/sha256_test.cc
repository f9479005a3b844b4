// Examples of FIPS 180-4 and RFC 4231.

#include "base/sha256.h"

#include <gtest/gtest.h>

namespace paddle {
namespace {

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.finish_digits();
}

TEST(Sha256, HashesTheStandardsExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t size = 0; size <= text.size(); ++size) {
    const std::string_view whole = std::string_view(text).substr(0, size);
    const std::string expected = sha256(whole);
    for (const size_t piece : {size_t{1}, size_t{55}, size_t{63}, size_t{64}, size_t{65}}) {
      Sha256 hash;
      for (size_t at = 0; at < size; at += piece) hash.add(whole.substr(at, piece));
      ASSERT_EQ(hash.finish_digits(), expected) << size << " in pieces of " << piece;
    }
  }
}

TEST(Hmac, GivesTheStandardsExamples) {
  EXPECT_EQ(hmac_sha256(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_sha256(std::string(131, '\xaa'),
                        "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, TextsAreComparedAsAWhole) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  EXPECT_TRUE(equal_in_constant_time("", ""));
}

}  // namespace
}  // namespace paddle
