// Package keyboard shows and hides keys.
package keyboard

import (
	"fmt"
	str "strings"
)

const (
	MaxTries = 3
	minTries = iota
)

// Keyboard is a row of keys.
type Keyboard[T any] struct {
	keys []T
	size int `json:"size"`
}

// Shape has an area; its methods have no bodies.
type Shape interface {
	Area() float64
}

type (
	// View is looked at.
	View struct{ id int }
	List []View
)

// Hide hides the keyboard of a View.
//
// It returns whether it was hidden.
func (k *Keyboard[T]) Hide(view *View, flags ...int) (hidden bool, err error) {
	// ask the system
	manager := system.Service("input_method") // at the end
	query := `select
	  raw`
	log := func(text string) { fmt.Println("hidden\t", text, MAX) }
	defer k.unlock()
	if size := len(query); size > MaxTries {
		return false, fmt.Errorf("not hidden after %d", size)
	}
	return manager.Hide(&View{id: 1}, 'x'), nil
}

/*
Map applies a function.
*/
func Map[T, U any](in []T, apply func(T) U) []U {
	out := make([]U, 0)
	for _, one := range in {
		out = append(out, apply(one))
	}
	return out
}

func (List) Len() int { return 0 }

func (l List) größe(höhe int) int { return höhe }

// An old comment, not about the next function.

func init() { go worker(func() { str.ToUpper("closure") }) }

// Handler answers.
var Handler = func(w Writer) { w.Write(nil) }

func external(x int) int
