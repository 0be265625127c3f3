// SPDX-License-Identifier: Apache-2.0
#include "common/peer_status.h"

#include <gtest/gtest.h>

#include "common/status.h"

namespace devmgr {
namespace {

TEST(PeerStatusTest, OnlyWhatIsMarkedIsFromThePeer) {
  EXPECT_FALSE(IsFromPeer(absl::OkStatus()));
  EXPECT_FALSE(IsFromPeer(UnavailableError("gone")));
  EXPECT_TRUE(IsFromPeer(FromPeer(UnavailableError("gone"))));
}

TEST(PeerStatusTest, TheMarkCanBeTakenOff) {
  EXPECT_EQ(Unmarked(FromPeer(UnavailableError("gone"))),
            UnavailableError("gone"));
  EXPECT_EQ(Unmarked(absl::OkStatus()), absl::OkStatus());
}

TEST(PeerStatusTest, TheMarkGoesAlongWithContext) {
  const absl::Status status =
      WithContext(FromPeer(UnavailableError("gone")), "plugin '{}'", "p");
  EXPECT_TRUE(IsFromPeer(status));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(status), "plugin 'p': gone");
}

TEST(PeerStatusTest, WhatTheTransportSaysShowsNoAnswer) {
  for (const absl::Status& status :
       {UnavailableError("x"), CancelledError("x"), AbortedError("x"),
        DeadlineExceededError("x"), InternalError("x"),
        ResourceExhaustedError("x")}) {
    EXPECT_FALSE(ShowsAnswer(status)) << status;
    EXPECT_TRUE(ShowsAnswer(FromPeer(status))) << status;
  }
  EXPECT_TRUE(ShowsAnswer(absl::OkStatus()));
  EXPECT_TRUE(ShowsAnswer(UnimplementedError("x")));
}

}  // namespace
}  // namespace devmgr
