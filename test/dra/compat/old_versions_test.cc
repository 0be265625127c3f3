// SPDX-License-Identifier: Apache-2.0
#include "dra/compat/old_versions.h"

#include <gtest/gtest.h>

#include "devmgr/wire/dra/v1alpha3/dra.pb.h"
#include "devmgr/wire/dra/v1beta1/dra.pb.h"

namespace devmgr::dra {
namespace {

namespace v1alpha3 = wire::dra::v1alpha3;
namespace v1beta1 = wire::dra::v1beta1;

TEST(TellApartTest, DevicesWithNamesAreV1alpha4AndCdiNamesAreV1alpha3) {
  v1beta1::NodePrepareResourcesResponse named;
  auto* device = (*named.mutable_claims())["u-1"].add_devices();
  device->set_pool_name("p");
  device->set_device_name("d");
  EXPECT_EQ(TellApart(named.SerializeAsString())->name, "v1alpha4");
  v1alpha3::NodePrepareResourcesResponse plain;
  (*plain.mutable_claims())["u-1"].add_cdi_devices("a.b/c=1");
  EXPECT_EQ(TellApart(plain.SerializeAsString())->name, "v1alpha3");
}

TEST(TellApartTest, AnswersWithoutDevicesTellNothing) {
  v1alpha3::NodePrepareResourcesResponse answer;
  EXPECT_EQ(TellApart(answer.SerializeAsString()), nullptr);
  (*answer.mutable_claims())["u-1"];
  (*answer.mutable_claims())["u-2"].set_error("boom");
  EXPECT_EQ(TellApart(answer.SerializeAsString()), nullptr);
  (*answer.mutable_claims())["u-1"].add_cdi_devices("not a CDI name");
  EXPECT_EQ(TellApart(answer.SerializeAsString()), nullptr);
  EXPECT_EQ(TellApart("\x0a\x7f\x01"), nullptr);
}

}  // namespace
}  // namespace devmgr::dra
