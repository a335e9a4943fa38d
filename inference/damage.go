package inference

import (
	"fmt"
	"math"
)

// DamagedError says that the model computed something that is no number: only damaged weights do that. Loading finds the damage where it
// can be found without reading all scales; the rest shows here, in the answer.
type DamagedError struct {
	Token  int32 // id whose logit is no number
	Number float32
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the model's weights give %v (logit of token %d), want numbers: its files are damaged", e.Number, e.Token)
}

// damaged looks for the reason why no token could be chosen: it returns a *DamagedError where a logit is NaN or +Inf, else err.
func damaged(logits []float32, err error) error {
	for id, x := range logits {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 1) { // -Inf only bans a token
			return &DamagedError{int32(id), x}
		}
	}
	return err
}
