// Autorelease pools: a stack per thread, checked for order and thread.
#pragma once

namespace pond {
void endPools();          // reports the pools that are still open
void* pondGlobalBlock();  // the address of _NSConcreteGlobalBlock
}  // namespace pond
