package inference

import (
	"context"
	"time"

	"pond/inference/memgate"
)

// readAheadSpare is what must be left beside the weights for reading them ahead to be of use: state, scratch and the rest of the process.
// With less, the pages read last push out those read first.
const readAheadSpare = 512 << 20

// readAhead brings mapped weights into memory before the first answer: it reads a disk in order, where the first tokens would read it
// expert by expert. Weights that are there already cost some milliseconds. Where the available memory would not hold them the step is
// left out, and the log says so; unknown memory counts as enough, because the memory gate has decided before.
func (e *Engine) readAhead(ctx context.Context, available memgate.Amount, told func(done, total int64)) error {
	weights := uint64(e.model.WeightBytes())
	if available.Known && available.Bytes < weights+readAheadSpare {
		e.log.Warn("weights are not read ahead, memory would not hold them", "weight_bytes", weights, "available_bytes", available.Bytes)
		return nil
	}
	start := time.Now()
	if err := e.ckpt.Load(ctx, e.model.WeightNames(), told); err != nil {
		return err
	}
	e.log.Info("weights in memory", "weight_bytes", weights, "seconds", time.Since(start).Seconds())
	return nil
}
