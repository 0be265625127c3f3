// SPDX-License-Identifier: Apache-2.0
#include "server/podresources/unread_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "support/status_matchers.h"

namespace devmgr::podresources {
namespace {

using ::testing::HasSubstr;

TEST(UnreadAnswersTest, OneClientHasSoMuchAndOthersHaveTheirs) {
  UnreadAnswers unread({100, 1'000});
  auto first = unread.Take("a", 60);
  ASSERT_THAT(first.status(), IsOk());
  EXPECT_THAT(unread.Take("a", 41).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("60 bytes of answers wait already for a")));
  EXPECT_THAT(unread.Take("a", 40).status(), IsOk());
  EXPECT_THAT(unread.Take("b", 100).status(), IsOk());
  first->reset();
  EXPECT_THAT(unread.Take("a", 100).status(), IsOk());
}

TEST(UnreadAnswersTest, OneAnswerIsTakenWhateverItsSize) {
  UnreadAnswers unread({100, 200});
  const auto first = unread.Take("a", 5'000);
  EXPECT_THAT(first.status(), IsOk());
  EXPECT_THAT(unread.Take("a", 0).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  const auto other = unread.Take("b", 50);
  EXPECT_THAT(other.status(), IsOk());
  EXPECT_THAT(unread.Take("b", 10).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("for clients to read them")));
}

TEST(UnreadAnswersTest, AnswersMayBeEmptyAndOutliveIt) {
  auto unread = std::make_unique<UnreadAnswers>(UnreadAnswers::Limits());
  auto first = unread->Take("a", 0);
  auto second = unread->Take("a", 0);
  ASSERT_THAT(first.status(), IsOk());
  ASSERT_THAT(second.status(), IsOk());
  first->reset();
  unread.reset();
  second->reset();
}

}  // namespace
}  // namespace devmgr::podresources
