#include "ops/catalogue.hpp"

namespace brontes::ops {

std::vector<NamedRoom> catalogue() {
  return {
#define BRONTES_ROOM(name, ...) {#name, name##_room},
#include "ops/ops.def"
#undef BRONTES_ROOM
  };
}

}  // namespace brontes::ops
