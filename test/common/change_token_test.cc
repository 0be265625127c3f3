// SPDX-License-Identifier: Apache-2.0
#include <devmgr/device_changes.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"

namespace devmgr {
namespace {

TEST(ChangeTokenTest, IsReadBackFromItsText) {
  const ChangeToken whole{1234};
  const ChangeToken within{1234, 2};
  const ChangeToken health{1234, ChangeToken::kWhole, 5, 0x8c21};
  for (const ChangeToken& token : {whole, within, health}) {
    const auto again = ChangeToken::Parse(token.ToString());
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(*again, token);
    EXPECT_EQ(again->process, token.process);
  }
  EXPECT_EQ(whole.ToString(), "1234");
  EXPECT_EQ(within.ToString(), "1234.2");
  EXPECT_EQ(health.ToString(), "1234.h5-8c21");
}

TEST(ChangeTokenTest, ComesInTheOrderOfChanges) {
  EXPECT_LT((ChangeToken{7, 1}), (ChangeToken{7, 2}));
  EXPECT_LT((ChangeToken{7, 2}), (ChangeToken{7}));
  EXPECT_LT((ChangeToken{7}), (ChangeToken{7, ChangeToken::kWhole, 1}));
  EXPECT_LT((ChangeToken{7, ChangeToken::kWhole, 9}), (ChangeToken{8, 1}));
}

TEST(ChangeTokenTest, OtherTextsAreRefused) {
  for (const char* text : {"", "x", "12.", "12.h", "12-", "12.3.4", "12 ", "-1",
                           "99999999999999999999", "12.h5-zz"}) {
    EXPECT_THAT(ChangeToken::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::HasSubstr("is no token of a change")))
        << text;
  }
}

}  // namespace
}  // namespace devmgr
