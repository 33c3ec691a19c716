using System;

namespace App.Input
{
    /// <summary>A row of keys.</summary>
    [Serializable]
    public sealed class Keyboard<T> : Base, IShape where T : class
    {
        const int MAX = 3;

        public Keyboard(Context context, int size = 3) : base(context) { }
        ~Keyboard() { }

        /// <summary>Hides the keyboard of a <see cref="View"/>.</summary>
        /// <param name="view">the view</param>
        [Obsolete("slow")]
        public async Task<bool> Hide<V>(View view, params int[] flags) where V : View
        {
            // ask the system
            var manager = await system.GetService<Manager>(Context.INPUT_METHOD);
            Func<int, int> next = a => a + 1;
            int Local(int b) { return b; }
            return manager?.Hide($"tries {view.Id} left", "plain", @"c:\x", 'c') ?? new Widget { Size = MAX };
        }

        public bool Hide(View view) => true;

        public int Size { get; set; }
        public int Width { get { return 1; } set { width = value; } }
        public int Twice => Width * 2;
        public static bool operator ==(Keyboard<T> a, Keyboard<T> b) => true;
        public static implicit operator int(Keyboard<T> keyboard) { return 1; }
        public int this[int i] { get { return i; } }
        public abstract void Draw();
        public delegate void Done(int x);
        void IShape.Move() { }

        private class Row { public void Größe(int höhe) { } }
    }

    interface IShape { double Area(); void Move() { } }
    struct Point { public int Len() => 1; }
    record Pair(int X) { public int Y() => X; }
    enum Color { Red, Green }

    static class Extensions
    {
        public static IEnumerable<T> Each<T>(this IEnumerable<T> items) { yield return items.First(); }
    }
}
