// SPDX-License-Identifier: Apache-2.0
#include "dra/compat/spoken_api.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "devmgr/wire/dra/v1alpha3/dra.pb.h"

namespace devmgr::dra {
namespace {

const ApiVersion& Version(const char* name) { return *FindApiVersion(name); }

SpokenApi AnyOld() {
  return SpokenApi({FindApiVersion("v1alpha4"), FindApiVersion("v1alpha3"),
                    FindApiVersion("v1alpha2"), FindApiVersion("v1alpha1")});
}

std::string CdiNames() {
  wire::dra::v1alpha3::NodePrepareResourcesResponse response;
  (*response.mutable_claims())["u"].add_cdi_devices("a.b/c=1");
  return response.SerializeAsString();
}

TEST(SpokenApiTest, OneVersionIsKnownFromTheBeginning) {
  SpokenApi api(Version("v1"));
  EXPECT_EQ(api.Name(), "v1.DRAPlugin");
  EXPECT_EQ(&api.current(), &Version("v1"));
  EXPECT_FALSE(api.OnUnimplemented(Version("v1")));
  EXPECT_EQ(&api.OnAnswer(Version("v1"), true, CdiNames()), &Version("v1"));
}

// Whose requests have all fields of the other's.
TEST(SpokenApiTest, OfTwoWithOneMethodTheOlderIsSpoken) {
  const SpokenApi api = AnyOld();
  EXPECT_EQ(&api.current(), &Version("v1alpha3"));
  EXPECT_EQ(api.Name(), "v1alpha4|v1alpha3|v1alpha2|v1alpha1");
}

TEST(SpokenApiTest, AnAnswerEndsTheSearch) {
  SpokenApi api = AnyOld();
  const ApiVersion& asked = api.current();
  // Answers to unprepare look alike.
  EXPECT_EQ(&api.OnAnswer(asked, false, CdiNames()), &asked);
  EXPECT_EQ(api.Name(), "v1alpha4|v1alpha3");
  EXPECT_EQ(&api.OnAnswer(asked, true, CdiNames()), &Version("v1alpha3"));
  EXPECT_EQ(api.Name(), "v1alpha3");
  EXPECT_FALSE(api.OnUnimplemented(asked));
}

TEST(SpokenApiTest, AMethodThatIsNotKnownLeadsToTheNext) {
  SpokenApi api = AnyOld();
  EXPECT_TRUE(api.OnUnimplemented(Version("v1alpha3")));
  EXPECT_EQ(&api.current(), &Version("v1alpha2"));
  // A second call that was under way.
  EXPECT_TRUE(api.OnUnimplemented(Version("v1alpha3")));
  EXPECT_EQ(&api.current(), &Version("v1alpha2"));
  EXPECT_TRUE(api.OnUnimplemented(Version("v1alpha2")));
  EXPECT_FALSE(api.IsOpen());
  EXPECT_FALSE(api.OnUnimplemented(Version("v1alpha1")));
  // Nothing was found: the next search begins anew, and no other call that was
  // under way takes part in it.
  EXPECT_TRUE(api.IsOpen());
  EXPECT_EQ(api.Name(), "v1alpha4|v1alpha3|v1alpha2|v1alpha1");
  EXPECT_FALSE(api.OnUnimplemented(Version("v1alpha1")));
  EXPECT_TRUE(api.IsOpen());
}

TEST(SpokenApiTest, ALateAnswerIsReadAsItWasAsked) {
  SpokenApi api = AnyOld();
  EXPECT_TRUE(api.OnUnimplemented(Version("v1alpha3")));
  EXPECT_EQ(&api.OnAnswer(Version("v1alpha3"), true, CdiNames()),
            &Version("v1alpha3"));
  EXPECT_EQ(api.Name(), "v1alpha2|v1alpha1");
}

}  // namespace
}  // namespace devmgr::dra
